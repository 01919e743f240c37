/** A form of Swing that prints its values when Save is pressed. */
import java.awt.BorderLayout;
import java.awt.GridLayout;
import javax.swing.*;

public class Form {
    public static void main(String[] args) {
        SwingUtilities.invokeLater(Form::open);
    }

    static void open() {
        JFrame frame = new JFrame("Order");
        JTextField name = new JTextField(20);
        JComboBox<String> size = new JComboBox<>(new String[] {"Small", "Medium", "Large"});
        JCheckBox gift = new JCheckBox("Gift wrapping");
        JButton save = new JButton("Save"), cancel = new JButton("Cancel");
        JLabel nameLabel = new JLabel("Name"), sizeLabel = new JLabel("Size");
        nameLabel.setLabelFor(name);
        sizeLabel.setLabelFor(size);
        save.addActionListener(e -> System.out.println(
            "saved|" + name.getText() + "|" + size.getSelectedItem() + "|" + gift.isSelected()));
        cancel.addActionListener(e -> System.out.println("cancelled"));
        JPanel fields = new JPanel(new GridLayout(3, 2));
        fields.add(nameLabel);
        fields.add(name);
        fields.add(sizeLabel);
        fields.add(size);
        fields.add(gift);
        JPanel buttons = new JPanel();
        buttons.add(save);
        buttons.add(cancel);
        JMenuBar bar = new JMenuBar();
        JMenu file = new JMenu("File");
        JMenuItem about = new JMenuItem("About orders");
        about.addActionListener(e -> System.out.println("about"));
        file.add(new JMenuItem("New"));
        file.add(about);
        bar.add(file);
        frame.setJMenuBar(bar);
        frame.add(fields, BorderLayout.CENTER);
        frame.add(buttons, BorderLayout.SOUTH);
        frame.setSize(400, 220);
        frame.setDefaultCloseOperation(JFrame.EXIT_ON_CLOSE);
        frame.setVisible(true);
    }
}
